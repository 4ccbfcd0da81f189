"""The client against servers, networks and processes that go wrong."""
