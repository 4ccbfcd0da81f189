// The Python type of a stream's chunk: a plain object, since a stream makes thousands of them a
// second.
#pragma once

#include "interpreter.hpp"
#include "polymux/stream/chat_batch.hpp"
#include "polymux/stream/chunk_parser.hpp"

namespace polymux::bindings {

/// Makes the types; once, before any chunk. Adds `ChatChunk` to the module.
void register_chat_chunk(py::module_& module);

/// An object that keeps a block for the chunks in it, so that they need no counter of their own.
/// A new reference, null with an exception set.
PyObject* new_block_keeper(const stream::BlockRef& block);

/// The block of a keeper.
const stream::Block* kept_block(PyObject* keeper) noexcept;

/// A new chunk; null with an exception set.
PyObject* new_chat_chunk(const stream::ChatBatch& batch, const stream::ChatRecord& record,
                         PyObject* keeper);

/// Whether the object is a chunk.
bool is_chat_chunk(PyObject* object) noexcept;

/// The chunk's JSON, parsed again. May throw std::bad_alloc. Its views last until the next call on
/// this thread.
const stream::ParsedChunk& parsed_chunk(PyObject* chunk);

/// A chunk's JSON within its block.
struct ChunkJson {
    stream::BlockRef block;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// Where the chunk's JSON stands.
ChunkJson json_of_chunk(PyObject* chunk) noexcept;

/// The chunk's finish reason, borrowed: str or None.
PyObject* finish_reason_of(PyObject* chunk) noexcept;

/// Calls a function of `polymux.client.chunk_fields`. A new reference, null with an exception set.
PyObject* call_chunk_fields(const char* function, PyObject* argument);

}  // namespace polymux::bindings
