// A reference to a callable for the duration of a call: two pointers, no allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace polymux {

template <typename Signature>
class FunctionRef;

/// Refers to a callable that outlives the call. Never store it.
template <typename R, typename... Arguments>
class FunctionRef<R(Arguments...)> {
public:
    template <typename F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                 std::is_invocable_r_v<R, F&, Arguments...>)
    FunctionRef(F&& callable) noexcept  // NOLINT(google-explicit-constructor)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Arguments... arguments) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(object))(
                  std::forward<Arguments>(arguments)...);
          }) {}

    R operator()(Arguments... arguments) const {
        return call_(object_, std::forward<Arguments>(arguments)...);
    }

private:
    void* object_;
    R (*call_)(void*, Arguments...);
};

}  // namespace polymux
