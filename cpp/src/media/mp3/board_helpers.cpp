// The board's side towards the threads that help: who is there, and who waits for what.
#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include "media/mp3/board.hpp"

namespace polymux::media::mp3 {

void Board::expect_helper() {
    const Lock lock(mutex_);
    ++expected_helpers_;
}

void Board::forget_expected_helpers() {
    const Lock lock(mutex_);
    expected_helpers_ = 0;
}

void Board::help() {
    {
        const Lock lock(mutex_);
        expected_helpers_ = std::max(0, expected_helpers_ - 1);
        ++active_helpers_;
    }
    try {
        while (const std::shared_ptr<RunJob> job = claim(true)) {
            while (step(job)) {
            }
        }
    } catch (const std::bad_alloc&) {
        fail({.code = ErrorCode::out_of_memory,
              .message = "not enough memory to encode in parallel"});
    } catch (const std::exception& unexpected) {
        fail({.code = ErrorCode::internal, .message = unexpected.what()});
    }
    const Lock lock(mutex_);
    --active_helpers_;
    changed_.notify_all();
}

int Board::helpers() const {
    const Lock lock(mutex_);
    return active_helpers_ + expected_helpers_;
}

int Board::expected_helpers() const {
    const Lock lock(mutex_);
    return expected_helpers_;
}

void Board::wait_for_change(int timeout_ms) {
    Lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms));
}

void Board::wait_for_helpers() {
    Lock lock(mutex_);
    changed_.wait(lock, [this] { return active_helpers_ == 0; });
}

}  // namespace polymux::media::mp3
