"""Token streams: many slow ones at once, open ones, canceled ones, and a fast one."""
