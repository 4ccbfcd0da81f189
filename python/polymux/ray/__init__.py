"""Work on a cluster of Ray: batches by actors, engines of a server by Ray Serve.

Nothing here is needed on one machine, and nothing else imports Ray. A batch (`batch_executor`)
keeps its manifest, its threads and its storage; each thread has its item done by a worker on
whatever machine has room. A server keeps its doors, jobs and files; its engines are deployments
(`deployment`) whose replicas (`replica`) hold the same child processes as on one machine, and are
asked by handle.
"""
