// A chunk as pybind11 gives it: one object a chunk, its texts as attributes; the object that
// polymux's plain CPython type is compared with.

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <string>

namespace py = pybind11;

namespace {

struct Chunk {
    std::shared_ptr<const std::string> body;
    std::size_t begin = 0;
    std::size_t length = 0;

    [[nodiscard]] py::str content() const { return {body->data() + begin, length}; }
};

class Chunks {
public:
    Chunks(std::string body, std::size_t count)
        : body_(std::make_shared<const std::string>(std::move(body))), left_(count) {}

    Chunk next() {
        if (left_ == 0) throw py::stop_iteration();
        --left_;
        return {.body = body_, .begin = 0, .length = body_->size()};
    }

private:
    std::shared_ptr<const std::string> body_;
    std::size_t left_;
};

}  // namespace

PYBIND11_MODULE(bound_chunk, module) {
    py::class_<Chunk>(module, "Chunk").def_property_readonly("content", &Chunk::content);
    py::class_<Chunks>(module, "Chunks")
        .def(py::init<std::string, std::size_t>())
        .def(
            "__iter__", [](Chunks& chunks) -> Chunks& { return chunks; },
            py::return_value_policy::reference_internal)
        .def("__next__", &Chunks::next);
}
