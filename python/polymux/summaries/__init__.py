"""Summarize videos with a chat model, from their captions or speech."""
