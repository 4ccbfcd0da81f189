// Parts of a body whose bytes Python objects give, piece by piece, on the thread that reads.
#pragma once

#include <memory>
#include <string>

#include "errors.hpp"
#include "polymux/request/multipart.hpp"
#include "python_bytes.hpp"

namespace polymux::bindings {

/// Whoever reads it holds no GIL. What the object raises is kept in `calls`; the read then fails
/// with `callback_failed`.
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
    // GIL held in all three; they raise what the object raises.

    /// The next bytes, never empty; null at the end. `size`: at most so many, where that is asked.
    virtual std::unique_ptr<HeldBuffer> next(std::size_t size) = 0;
    virtual void restart() = 0;

private:
    Error named(Error error) const;

    std::string name_;
    std::shared_ptr<PythonCalls> calls_;
    std::unique_ptr<HeldBuffer> piece_;  // What is left of the last one, from offset_ on.
    std::size_t offset_ = 0;
};

/// A binary file object from where it stands. GIL held; raises what the object raises.
std::unique_ptr<PythonPart> file_object_part(const py::object& file, std::string name,
                                             std::shared_ptr<PythonCalls> calls);

/// Pieces of an iterable; it can be rewound unless it is its own iterator. GIL held.
std::unique_ptr<PythonPart> iterable_part(const py::object& iterable, std::string name,
                                          std::optional<std::uint64_t> size_bytes,
                                          std::shared_ptr<PythonCalls> calls);

}  // namespace polymux::bindings
