"""Run one operation on many inputs, with recovery after a crash at any moment.

`polymux.batch` and ``polymux batch`` use it. The package name is plural because it would otherwise
hide the function `polymux.batch`.

A thread lists the inputs (`inputs`) and records them in a manifest (`manifest`). Worker threads
(`runner`) take items from there, run them (`executors`) and store the results (`output_store`) in
four steps: write a staging file, record its final name, rename it, and record the item as done.
After a kill, the next run can therefore decide what to do with every file.
"""
