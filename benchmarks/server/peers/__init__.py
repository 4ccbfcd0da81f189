"""Bare applications on uvicorn, one file each: what people write where they do not use polymux."""
