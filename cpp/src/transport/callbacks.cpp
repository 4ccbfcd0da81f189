#include "transport/callbacks.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <string_view>

#include "transport/descriptors.hpp"
#include "transport/failures.hpp"

namespace polymux::transport {

/// The functions that libcurl calls. They never throw.
struct Callbacks {
    static Transfer& of(void* self) { return *static_cast<Transfer*>(self); }

    /// Called before the request is sent over an existing connection.
    static int before_request(void* self, char*, char*, int, int local_port) {
        try {
            return of(self).before_send(local_port) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
        } catch (const std::bad_alloc&) {
            return CURL_PREREQFUNC_ABORT;
        }
    }

    static int log(CURL*, curl_infotype type, char* text, std::size_t size, void* self) {
        if (type == CURLINFO_TEXT) of(self).on_log({text, size});
        return 0;
    }

    static std::size_t read(char* buffer, std::size_t one, std::size_t count, void* self) {
        Transfer& transfer = of(self);
        try {
            return transfer.read(buffer, one * count);
        } catch (const std::bad_alloc&) {
            transfer.own_failure_ = no_memory();
            return CURL_READFUNC_ABORT;
        }
    }

    static int seek(void* self, curl_off_t offset, int origin) {
        Transfer& transfer = of(self);
        try {
            return origin == SEEK_SET ? transfer.seek(offset) : CURL_SEEKFUNC_FAIL;
        } catch (const std::bad_alloc&) {
            return CURL_SEEKFUNC_FAIL;
        }
    }

    static std::size_t field(char* data, std::size_t one, std::size_t count, void* self) {
        return guarded(of(self), &Transfer::on_header_line, {data, one * count});
    }

    static std::size_t body(char* data, std::size_t one, std::size_t count, void* self) {
        return guarded(of(self), &Transfer::on_body, {data, one * count});
    }

    static std::size_t guarded(Transfer& transfer, std::size_t (Transfer::*take)(std::string_view),
                               std::string_view bytes) {
        try {
            return (transfer.*take)(bytes);
        } catch (const std::bad_alloc&) {
            transfer.own_failure_ = no_memory();
            return 0;
        }
    }

    static curl_socket_t open(void* self, curlsocktype, curl_sockaddr* address) {
        const int opened =
            ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
        if (opened < 0) return CURL_SOCKET_BAD;
        try {
            static_cast<EngineContext*>(self)->sockets[opened] = {};
        } catch (const std::bad_alloc&) {
            ::close(opened);
            return CURL_SOCKET_BAD;
        }
        register_descriptor(opened);
        return opened;
    }

    static int close(void* self, curl_socket_t socket) {
        auto& context = *static_cast<EngineContext*>(self);
        auto& sockets = context.sockets;
        if (const auto found = sockets.find(socket); found != sockets.end()) {
            const SocketUse& use = found->second;
            if (use.user != nullptr) use.user->on_socket_closed(socket, use);
            context.record_close(socket, use);
            sockets.erase(found);
        }
        // A forked child may also hold the socket. Closing it here then does not notify the peer,
        // and epoll would still report it.
        epoll_ctl(context.epoll, EPOLL_CTL_DEL, socket, nullptr);
        ::shutdown(socket, SHUT_RDWR);
        unregister_descriptor(socket);
        return ::close(socket);
    }
};

bool set_callbacks(Transfer& transfer, EngineContext& context) {
    Setter set(transfer.handle());
    set(CURLOPT_PREREQFUNCTION, &Callbacks::before_request);
    set(CURLOPT_PREREQDATA, &transfer);
    set(CURLOPT_DEBUGFUNCTION, &Callbacks::log);
    set(CURLOPT_DEBUGDATA, &transfer);
    set(CURLOPT_READFUNCTION, &Callbacks::read);
    set(CURLOPT_READDATA, &transfer);
    set(CURLOPT_SEEKFUNCTION, &Callbacks::seek);
    set(CURLOPT_SEEKDATA, &transfer);
    set(CURLOPT_HEADERFUNCTION, &Callbacks::field);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &Callbacks::body);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_OPENSOCKETFUNCTION, &Callbacks::open);
    set(CURLOPT_OPENSOCKETDATA, &context);
    set(CURLOPT_CLOSESOCKETFUNCTION, &Callbacks::close);
    set(CURLOPT_CLOSESOCKETDATA, &context);
    return set.succeeded();
}

}  // namespace polymux::transport
