#include "chat_chunk.hpp"

#include <structmember.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "polymux/stream/chunk_parser.hpp"
#include "token_cache.hpp"

namespace polymux::bindings {

namespace {

using stream::BlockRef;
using stream::ChatRecord;
using stream::ChatRole;
using stream::FinishReason;

struct Keeper {
    PyObject_HEAD BlockRef block;
};

/// Immutable. Refers to nothing that could refer back to it, so the garbage collector need not
/// track it.
struct Chunk {
    PyObject_HEAD PyObject* content;  // str
    PyObject* finish_reason;          // str or None
    PyObject* role;                   // str or None
    PyObject* keeper;                 // Keeper of the block that contains `json`.
    const char* json;
    std::uint32_t json_bytes;
    std::int32_t index;  // -1 without choices
};

PyTypeObject* keeper_type = nullptr;
PyTypeObject* chunk_type = nullptr;
std::array<PyObject*, 7> finish_words{};  // By FinishReason: interned str, or None.
std::array<PyObject*, 6> role_words{};

#ifndef Py_GIL_DISABLED
constexpr std::size_t max_free_chunks = 256;
std::array<Chunk*, max_free_chunks> free_chunks{};
std::size_t free_count = 0;
#endif

Chunk* as_chunk(PyObject* object) noexcept {
    return reinterpret_cast<Chunk*>(object);
}

std::string_view json_of(const Chunk& chunk) noexcept {
    return {chunk.json, chunk.json_bytes};
}

void free_keeper(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    reinterpret_cast<Keeper*>(self)->block.~BlockRef();
    type->tp_free(self);
    Py_DECREF(type);
}

Chunk* allocate_chunk() {
#ifndef Py_GIL_DISABLED
    if (free_count > 0) {
        Chunk* const chunk = free_chunks[--free_count];
        PyObject_Init(reinterpret_cast<PyObject*>(chunk), chunk_type);
        return chunk;
    }
#endif
    return PyObject_New(Chunk, chunk_type);
}

void free_chunk(PyObject* self) {
    Chunk* const chunk = as_chunk(self);
    Py_XDECREF(chunk->content);
    Py_XDECREF(chunk->finish_reason);
    Py_XDECREF(chunk->role);
    Py_XDECREF(chunk->keeper);
    PyTypeObject* const type = Py_TYPE(self);
#ifndef Py_GIL_DISABLED
    if (free_count < max_free_chunks) {
        free_chunks[free_count++] = chunk;
        Py_DECREF(type);
        return;
    }
#endif
    PyObject_Free(self);
    Py_DECREF(type);
}

/// Parses a copy, because the parser reads past the end. Its views are valid until the next call on
/// this thread.
const stream::ParsedChunk& parsed(std::string_view json) {
    static thread_local stream::ChunkParser parser;
    static thread_local std::string padded;
    padded.assign(json).append(stream::Block::padding_bytes, '\0');
    return parser.parse(std::string_view(padded).substr(0, json.size()));
}

PyObject* str_of(std::string_view utf8) {
    return PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), nullptr);
}

/// The object for a known word; for other words, the text in the JSON.
template <typename Enum, std::size_t N>
PyObject* word(const std::array<PyObject*, N>& words, Enum value, std::string_view json,
               std::string_view stream::ParsedChunk::* text) {
    if (value != Enum::other) return Py_NewRef(words[static_cast<std::size_t>(value)]);
    return str_of(parsed(json).*text);
}

PyObject* build(std::string_view text, std::string_view json, const stream::ChunkTraits& traits,
                PyObject* keeper) {
    Chunk* const chunk = allocate_chunk();
    if (chunk == nullptr) return nullptr;
    chunk->keeper = Py_NewRef(keeper);
    chunk->json = json.data();
    chunk->json_bytes = static_cast<std::uint32_t>(json.size());
    chunk->index = static_cast<std::int32_t>(traits.choice_index);
    chunk->content = token_to_str(text);
    chunk->finish_reason =
        word(finish_words, traits.finish_reason, json, &stream::ParsedChunk::finish_reason);
    chunk->role = word(role_words, traits.role, json, &stream::ParsedChunk::role);
    PyObject* const self = reinterpret_cast<PyObject*>(chunk);
    if (chunk->content == nullptr || chunk->finish_reason == nullptr || chunk->role == nullptr) {
        Py_DECREF(self);
        return nullptr;
    }
    return self;
}

PyObject* chunk_from_bytes(std::string_view bytes) {
    const py::object keeper = py::reinterpret_steal<py::object>([&bytes] {
        const BlockRef block = BlockRef::make(bytes.size());
        std::memcpy(block->data(), bytes.data(), bytes.size());
        return new_block_keeper(block);
    }());
    if (!keeper) return nullptr;
    const stream::ParsedChunk& chunk = parsed(bytes);
    if (chunk.kind == stream::ParsedChunk::Kind::invalid) {
        const std::string message = "the chunk " + chunk.reason;
        PyObject* const error = PyObject_CallFunction(
            py::module_::import("polymux.errors").attr("DecodeError").ptr(), "s", message.c_str());
        if (error != nullptr) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
        Py_XDECREF(error);
        return nullptr;
    }
    const stream::ChunkTraits traits = chunk.traits;
    const std::string text(chunk.content);  // Looking up words parses again.
    return build(text, {kept_block(keeper.ptr())->data(), bytes.size()}, traits, keeper.ptr());
}

PyObject* chunk_new(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
    static const char* names[] = {"raw", nullptr};
    Py_buffer buffer;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "y*:ChatChunk", const_cast<char**>(names),
                                    &buffer) == 0) {
        return nullptr;
    }
    PyObject* made = nullptr;
    try {
        made = chunk_from_bytes(
            {static_cast<const char*>(buffer.buf), static_cast<std::size_t>(buffer.len)});
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (py::error_already_set& error) {
        error.restore();
    }
    PyBuffer_Release(&buffer);
    return made;
}

PyObject* chunk_repr(PyObject* self) {
    const Chunk* const chunk = as_chunk(self);
    const bool shortened = PyUnicode_GetLength(chunk->content) > 40;
    PyObject* const shown =
        shortened ? PyUnicode_Substring(chunk->content, 0, 40) : Py_NewRef(chunk->content);
    if (shown == nullptr) return nullptr;
    PyObject* const text =
        chunk->finish_reason == Py_None
            ? PyUnicode_FromFormat("ChatChunk(%R%s)", shown, shortened ? "..." : "")
            : PyUnicode_FromFormat("ChatChunk(%R%s, finish_reason=%R)", shown,
                                   shortened ? "..." : "", chunk->finish_reason);
    Py_DECREF(shown);
    return text;
}

PyObject* chunk_raw(PyObject* self, void*) {
    const std::string_view json = json_of(*as_chunk(self));
    return PyBytes_FromStringAndSize(json.data(), static_cast<Py_ssize_t>(json.size()));
}

PyObject* chunk_index(PyObject* self, void*) {
    const std::int32_t index = as_chunk(self)->index;
    if (index < 0) Py_RETURN_NONE;
    return PyLong_FromLong(index);
}

PyObject* chunk_reasoning(PyObject* self, void*) {
    try {
        const stream::ParsedChunk& chunk = parsed(json_of(*as_chunk(self)));
        // Without the text that its JSON has, it repeats earlier chunks.
        const bool repeats = chunk.whole_answer && !chunk.content.empty() &&
                             PyUnicode_GetLength(as_chunk(self)->content) == 0;
        return str_of(repeats ? std::string_view() : chunk.reasoning);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

/// A member that is read from the JSON on access; `name` is that of the reading function.
PyObject* chunk_field(PyObject* self, void* name) {
    PyObject* const raw = chunk_raw(self, nullptr);
    if (raw == nullptr) return nullptr;
    PyObject* const value = call_chunk_fields(static_cast<const char*>(name), raw);
    Py_DECREF(raw);
    return value;
}

PyObject* chunk_json(PyObject* self, PyObject*) {
    return chunk_field(self, const_cast<char*>("document"));
}

PyObject* chunk_reduce(PyObject* self, PyObject*) {
    PyObject* const raw = chunk_raw(self, nullptr);
    return raw == nullptr ? nullptr : Py_BuildValue("O(N)", Py_TYPE(self), raw);
}

PyObject* chunk_compare(PyObject* left, PyObject* right, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(left) != Py_TYPE(right)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    const bool same = json_of(*as_chunk(left)) == json_of(*as_chunk(right));
    return PyBool_FromLong((operation == Py_EQ) == same ? 1 : 0);
}

Py_hash_t chunk_hash(PyObject* self) {
    const std::size_t hash = std::hash<std::string_view>{}(json_of(*as_chunk(self)));
    return static_cast<Py_hash_t>(hash >> 1U);  // -1 would mean an error.
}

PyGetSetDef field(const char* name, const char* documentation) {
    return {name, &chunk_field, nullptr, documentation, const_cast<char*>(name)};
}

PyTypeObject* make_chunk_type() {
    static PyMemberDef members[] = {
        {"content", T_OBJECT_EX, offsetof(Chunk, content), READONLY,
         "Text of this chunk; '' if it has none."},
        {"finish_reason", T_OBJECT_EX, offsetof(Chunk, finish_reason), READONLY,
         "Why the response ended: 'stop', 'length', 'tool_calls', ...; None before the end."},
        {"role", T_OBJECT_EX, offsetof(Chunk, role), READONLY,
         "Role of the author, usually 'assistant'; None if missing."},
        {}};
    static PyGetSetDef properties[] = {
        {"raw", &chunk_raw, nullptr, "The received JSON of the chunk, as bytes.", nullptr},
        {"index", &chunk_index, nullptr, "Index of the choice, from 0; None without choices.",
         nullptr},
        {"reasoning", &chunk_reasoning, nullptr, "Reasoning text of this chunk; '' if it has none.",
         nullptr},
        field("id", "ID of the response; None if missing."),
        field("model", "Model name reported by the server; None if missing."),
        field("engine_model",
              "Name of the model that does the work; None in chunks without this name."),
        field("created", "Unix time in seconds; None if missing."),
        field("tool_calls",
              "Partial tool calls of the first choice, as a tuple of objects with attributes."),
        field("logprobs", "Log probabilities of the first choice; None if missing."),
        field("usage", "Token counts, which some servers send in the last chunk; None if missing."),
        field("choices",
              "All choices, as a tuple of objects as in openai-python: choices[0].delta.content."),
        {}};
    static PyMethodDef methods[] = {
        {"json", &chunk_json, METH_NOARGS, "Return the chunk as a new dict."},
        {"__reduce__", &chunk_reduce, METH_NOARGS, "Pickle the chunk as JSON."},
        {}};
    static PyType_Slot slots[] = {
        {Py_tp_doc,
         const_cast<char*>(
             "ChatChunk(raw)\n--\n\nOne chunk of a streamed chat response, parsed from JSON.")},
        {Py_tp_new, reinterpret_cast<void*>(&chunk_new)},
        {Py_tp_dealloc, reinterpret_cast<void*>(&free_chunk)},
        {Py_tp_repr, reinterpret_cast<void*>(&chunk_repr)},
        {Py_tp_richcompare, reinterpret_cast<void*>(&chunk_compare)},
        {Py_tp_hash, reinterpret_cast<void*>(&chunk_hash)},
        {Py_tp_members, members},
        {Py_tp_getset, properties},
        {Py_tp_methods, methods},
        {}};
    static PyType_Spec spec = {"polymux.ChatChunk", sizeof(Chunk), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* make_keeper_type() {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_keeper)}, {}};
    static PyType_Spec spec = {
        "polymux._native._core.BlockKeeper", sizeof(Keeper), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

template <typename Enum, std::size_t N>
void intern(std::array<PyObject*, N>& words) {
    for (std::size_t index = 0; index < N; ++index) {
        const std::string text(stream::to_string(static_cast<Enum>(index)));
        words[index] = text.empty() ? Py_NewRef(Py_None) : PyUnicode_InternFromString(text.c_str());
        if (words[index] == nullptr) throw py::error_already_set();
    }
}

}  // namespace

PyObject* new_block_keeper(const BlockRef& block) {
    Keeper* const keeper = PyObject_New(Keeper, keeper_type);
    if (keeper == nullptr) return nullptr;
    new (&keeper->block) BlockRef(block);
    return reinterpret_cast<PyObject*>(keeper);
}

const stream::Block* kept_block(PyObject* keeper) noexcept {
    return reinterpret_cast<Keeper*>(keeper)->block.get();
}

PyObject* new_chat_chunk(const stream::ChatBatch& batch, const ChatRecord& record,
                         PyObject* keeper) {
    return build(batch.text(record), stream::ChatBatch::json(record), record.traits, keeper);
}

bool is_chat_chunk(PyObject* object) noexcept {
    return Py_IS_TYPE(object, chunk_type);
}

const stream::ParsedChunk& parsed_chunk(PyObject* chunk) {
    return parsed(json_of(*as_chunk(chunk)));
}

ChunkJson json_of_chunk(PyObject* chunk) noexcept {
    const Chunk& own = *as_chunk(chunk);
    const BlockRef& block = reinterpret_cast<Keeper*>(own.keeper)->block;
    return {.block = block,
            .offset = static_cast<std::size_t>(own.json - block->data()),
            .bytes = own.json_bytes};
}

std::string_view content_of_chunk(PyObject* chunk) noexcept {
    Py_ssize_t bytes = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(as_chunk(chunk)->content, &bytes);
    if (text == nullptr) PyErr_Clear();
    return {text, text == nullptr ? 0 : static_cast<std::size_t>(bytes)};
}

PyObject* finish_reason_of(PyObject* chunk) noexcept {
    return as_chunk(chunk)->finish_reason;
}

PyObject* call_chunk_fields(const char* function, PyObject* argument) {
    PyObject* const module = PyImport_ImportModule("polymux.client.chunk_fields");
    if (module == nullptr) return nullptr;
    PyObject* const value = PyObject_CallMethod(module, function, "O", argument);
    Py_DECREF(module);
    return value;
}

void register_chat_chunk(py::module_& module) {
    intern<FinishReason>(finish_words);
    intern<ChatRole>(role_words);
    keeper_type = make_keeper_type();
    chunk_type = make_chunk_type();
    if (keeper_type == nullptr || chunk_type == nullptr) throw py::error_already_set();
    module.add_object("ChatChunk", py::handle(reinterpret_cast<PyObject*>(chunk_type)));
}

}  // namespace polymux::bindings
