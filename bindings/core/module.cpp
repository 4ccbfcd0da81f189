// polymux._native._core: the contract, request bodies, stream decoding and transport for Python.
#include "answer_shape.hpp"
#include "chat_chunk.hpp"
#include "chat_stream.hpp"
#include "contract.hpp"
#include "errors.hpp"
#include "event_splitter.hpp"
#include "fetch.hpp"
#include "front.hpp"
#include "gate.hpp"
#include "interpreter.hpp"
#include "json_buffer.hpp"
#include "json_parser.hpp"
#include "json_scan.hpp"
#include "multipart.hpp"
#include "polymux/version.hpp"
#include "transport.hpp"

namespace polymux::bindings {

// `mod_gil_not_used`: free_threads.hpp synchronizes shared data, and scripts/check-free-threaded
// runs the client's tests in an interpreter without a GIL.
PYBIND11_MODULE(_core_of_main, module, py::mod_gil_not_used()) {
    module.doc() = "The native core module. Private: use the functions of `polymux`.";
    module.attr("__version__") = version();
    register_contract(module);
    register_answer_shape(module);
    register_chat_chunk(module);
    register_chat_stream(module);
    register_fetch(module);
    register_front(module);
    register_gate(module);
    register_event_splitter(module);
    register_json_buffer(module);
    register_json_parser(module);
    register_json_scan(module);
    register_multipart(module);
    register_transport(module);
    watch_interpreter_exit();
    translate_exceptions();
    forbid_uninitialized(module);
}

}  // namespace polymux::bindings

/// The symbol that Python looks up. Only the main interpreter can load the module: in others,
/// pybind11 would wait for a lock that the waiting thread holds.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is CPython's rule.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "polymux._native._core is not supported in a subinterpreter. Import "
                        "polymux in the main interpreter");
        return nullptr;
    }
    return polymux::bindings::PyInit__core_of_main();
}
