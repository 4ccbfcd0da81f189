"""Plain applications on uvicorn, one file each: what people write without polymux."""
