"""Song recognition: a seeded set of music, snippets and queries, and what is made of them."""
