"""The typed methods of all operations, made from the contract.

`synchronous.Operations` and `asynchronous.AsyncOperations` know what every operation takes and
gives, and nothing of how a request travels: whoever derives from them says that in one method,
`_call`.
"""
