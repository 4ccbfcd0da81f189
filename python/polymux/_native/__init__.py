"""The two extension modules; the modules of this folder alone import them."""
