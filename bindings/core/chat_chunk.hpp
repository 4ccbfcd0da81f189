// The Python type of a stream's chunk: a plain object, because a stream creates thousands per
// second.
#pragma once

#include "interpreter.hpp"
#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chunk_parser.hpp"

namespace polymux::bindings {

/// Creates the types and adds `ChatChunk` to the module. Call once, before creating chunks.
void register_chat_chunk(py::module_& module);

/// An object that keeps a block alive for its chunks, which then need no reference count for it.
/// New reference; null with an exception set.
PyObject* new_block_keeper(const stream::BlockRef& block);

/// The block of a keeper.
const stream::Block* kept_block(PyObject* keeper) noexcept;

/// A new chunk; null with an exception set.
PyObject* new_chat_chunk(const stream::ChatBatch& batch, const stream::ChatRecord& record,
                         PyObject* keeper);

bool is_chat_chunk(PyObject* object) noexcept;

/// Parses the chunk's JSON again. May throw std::bad_alloc. Its views are valid until the next call
/// on this thread.
const stream::ParsedChunk& parsed_chunk(PyObject* chunk);

/// A chunk's JSON within its block.
struct ChunkJson {
    stream::BlockRef block;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

ChunkJson json_of_chunk(PyObject* chunk) noexcept;

/// The chunk's `content`, valid as long as the chunk.
std::string_view content_of_chunk(PyObject* chunk) noexcept;

/// The chunk's finish reason, borrowed: str or None.
PyObject* finish_reason_of(PyObject* chunk) noexcept;

/// Calls a function of `polymux.client.chunk_fields`. New reference; null with an exception set.
PyObject* call_chunk_fields(const char* function, PyObject* argument);

}  // namespace polymux::bindings
