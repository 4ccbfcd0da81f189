#include "polymux/media/probe.hpp"

#include <new>

#include "media/info.hpp"
#include "media/opened_input.hpp"

namespace polymux::media {

Result<MediaInfo> probe(ByteSource& source, const Limits& limits, const CancelToken& token) try {
    const LogCapture capture;
    Result<OpenedInput> input = OpenedInput::open(source, limits, token);
    if (!input) return input.error();
    input->find_start();
    if (std::optional<Error> failure = input->io().failure()) return *failure;
    return describe(*input);
} catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::out_of_memory,
                 .message = "not enough memory to probe the input",
                 .input_name = source.name()};
}

}  // namespace polymux::media
