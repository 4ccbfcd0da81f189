#include "polymux/stream/chat_batch.hpp"

namespace polymux::stream {

BlockRef ChatBatch::block_of(const ChatRecord& record) const noexcept {
    for (const BlockRef& block : blocks_) {
        if (block.get() == record.block) return block;
    }
    return {};
}

void ChatBatch::clear() noexcept {
    records_.clear();
    text_.clear();
    blocks_.clear();
    end_.reset();
}

}  // namespace polymux::stream
