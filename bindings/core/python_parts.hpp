// Parts of a body whose bytes come from Python objects, piece by piece, on the reading thread.
#pragma once

#include <memory>
#include <string>

#include "errors.hpp"
#include "polymux/request/multipart.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {

/// The reading thread does not hold the GIL. `calls` keeps the object's exceptions; the read then
/// fails with `callback_failed`.
class PythonPart : public request::PartSource {
public:
    PythonPart(std::string name, std::shared_ptr<PythonCalls> calls)
        : name_(std::move(name)), calls_(std::move(calls)) {}

    Result<std::size_t> read(std::span<std::byte> buffer) final;
    Result<void> check_unchanged() final;
    Result<void> rewind() final;
    const std::string& name() const noexcept final { return name_; }

    /// For the garbage collector; GIL held.
    virtual int traverse(visitproc visit, void* arg) const = 0;
    virtual void clear() noexcept = 0;

protected:
    // GIL held in all functions below; they raise the object's exceptions.

    /// The next bytes, never empty; null at the end. `size` is the maximum, for objects that accept
    /// one.
    virtual std::unique_ptr<HeldBuffer> next(std::size_t size) = 0;
    virtual void restart() = 0;

private:
    Error named(Error error) const;

    std::string name_;
    std::shared_ptr<PythonCalls> calls_;
    std::unique_ptr<HeldBuffer> piece_;  // The rest of the last piece, from offset_ on.
    std::size_t offset_ = 0;
};

/// A binary file object, from its current position. GIL held; raises the object's exceptions.
std::unique_ptr<PythonPart> file_object_part(const py::object& file, std::string name,
                                             std::shared_ptr<PythonCalls> calls);

/// Pieces of an iterable. It can be rewound unless it is its own iterator. GIL held.
std::unique_ptr<PythonPart> iterable_part(const py::object& iterable, std::string name,
                                          std::optional<std::uint64_t> size_bytes,
                                          std::shared_ptr<PythonCalls> calls);

}  // namespace polymux::bindings
