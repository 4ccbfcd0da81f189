// polymux._core: the contract, request bodies, stream decoding and transport for Python.
#include "chat_chunk.hpp"
#include "chat_stream.hpp"
#include "contract.hpp"
#include "event_splitter.hpp"
#include "fetch.hpp"
#include "interpreter.hpp"
#include "json_buffer.hpp"
#include "json_parser.hpp"
#include "multipart.hpp"
#include "polymux/version.hpp"
#include "transport.hpp"

namespace polymux::bindings {

PYBIND11_MODULE(_core, module, py::mod_gil_not_used()) {
    module.doc() = "The native core module. Private: use the functions of `polymux`.";
    module.attr("__version__") = version();
    register_contract(module);
    register_chat_chunk(module);
    register_chat_stream(module);
    register_fetch(module);
    register_event_splitter(module);
    register_json_buffer(module);
    register_json_parser(module);
    register_multipart(module);
    register_transport(module);
}

}  // namespace polymux::bindings
