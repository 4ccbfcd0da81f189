"""Chat engine (llama.cpp)."""
