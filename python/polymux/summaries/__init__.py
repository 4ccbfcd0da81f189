"""What videos are about: their captions or speech, in parts, told in short by a chat model."""
