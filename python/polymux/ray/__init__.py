"""Work on a cluster of Ray: batches by Ray Data, engines of a server by Ray Serve.

Nothing here is needed on one machine, and nothing else imports Ray. A batch (`executor`) keeps its
manifest, its threads and its storage; what they would have done here goes into a stream of orders
(`feed`) that workers on all machines of the cluster (`worker`) take theirs from. A server keeps its
doors, jobs and files; its engines are deployments (`serving`) whose replicas (`replica`) hold the
same child processes as on one machine, and are asked by handle (`backend`).
"""
