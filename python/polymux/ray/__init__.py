"""Ray support: batches on Ray actors, and a server's engines on Ray Serve.

A single machine does not need this package, and no other package imports Ray. `batch_executor` runs
a batch: manifest, threads and storage stay in this process, and each thread sends its item to a
worker on a machine with free resources. A server keeps its APIs, jobs and files. Its engines become
deployments (`deployment`); their replicas (`replica`) run the same child processes as on one
machine, and the server calls them through Ray Serve handles.
"""
