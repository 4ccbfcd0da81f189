"""One operation on many inputs, which survives whatever happens to its process.

`polymux.batch` and ``polymux batch`` stand on it. The name is a plural, as the function
`polymux.batch` would otherwise be hidden by its own package.

What there is to be done is written into a manifest (`manifest`) while folders are still being read
(`inputs`). Threads take it from there (`runner`), have it done (`executors`), and store what was
made (`output_store`): under a name of its own first, then written down, then under its right name,
then written down as done. So a process that is killed leaves nothing that the next cannot judge.
"""
