"""The typed methods of all operations, generated from the contract.

`synchronous.Operations` and `asynchronous.AsyncOperations` define the parameters and results of all
operations. Subclasses send the requests in one method, `_call`.
"""
