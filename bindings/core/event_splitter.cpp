#include "event_splitter.hpp"

#include <atomic>
#include <stdexcept>

#include "errors.hpp"
#include "free_threads.hpp"
#include "polymux/stream/sse.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {

namespace {

class EventSplitter {
public:
    explicit EventSplitter(std::size_t max_event_bytes)
        : splitter_({.max_event_bytes = max_event_bytes}) {}

    /// Returns the events that these bytes complete: (type, data) each.
    py::list feed(const py::object& bytes) {
        const Claim mine(busy_);
        if (!mine) throw std::runtime_error("this splitter is already in use by another call");
        const HeldBuffer held(bytes);
        const auto view = held.bytes();
        splitter_.append({reinterpret_cast<const char*>(view.data()), view.size()});
        py::list events;
        stream::SseEvent event;
        for (;;) {
            const auto found = splitter_.next(event);
            if (found == stream::SseSplitter::Found::nothing) return events;
            if (found == stream::SseSplitter::Found::too_long) {
                raise({.code = ErrorCode::undecodable_answer,
                       .message = "an event of the stream is too large (allowed " +
                                  std::to_string(splitter_.max_event_bytes()) + " bytes)"});
            }
            events.append(py::make_tuple(to_text(event.type),
                                         py::bytes(event.data.data(), event.data.size())));
        }
    }

private:
    std::atomic<bool> busy_ = false;
    stream::SseSplitter splitter_;
};

}  // namespace

void register_event_splitter(py::module_& module) {
    py::class_<EventSplitter>(module, "EventSplitter", py::is_final(), plain_metaclass(),
                              "Splits bytes that arrive in pieces into server-sent events.")
        .def("__reduce__", &refuse_pickling)
        .def(py::init<std::size_t>(), py::arg("max_event_bytes"))
        .def("feed", &EventSplitter::feed, py::arg("piece"));
}

}  // namespace polymux::bindings
