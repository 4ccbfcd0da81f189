"""The client against failing servers, networks and processes."""
