#define _GNU_SOURCE
#include "CTowline.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int towline_pipe(int *ends, int size) {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return -errno;
    // Fails if the user's pipes have reached their limit of memory (pipe(7)).
    if (fcntl(ends[1], F_SETPIPE_SZ, size) >= size) return 0;
    close(ends[0]);
    close(ends[1]);
    return -ENOBUFS;
}

int64_t towline_receive(int socket, int pipe, size_t count) {
    ssize_t moved = splice(socket, NULL, pipe, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    return moved < 0 ? -errno : moved;
}

int64_t towline_write_from_pipe(int file, int pipe, size_t count, int64_t offset) {
    off_t place = offset;
    ssize_t moved = splice(pipe, NULL, file, &place, count, SPLICE_F_MOVE);
    return moved < 0 ? -errno : moved;
}

static int64_t received(int socket) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return -errno;
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return -ENOTSUP;
    // The kernel counts the end of the peer's bytes as one byte. 8 is TCP_CLOSE_WAIT: netinet/tcp.h, which defines the
    // name, declares another tcp_info. This process never shuts down a direction before it closes a connection.
    int has_ended = info.tcpi_state == 8;
    return (int64_t)info.tcpi_bytes_received - has_ended;
}

int64_t towline_taken(int socket) {
    // The number of waiting bytes and the number of received bytes are read separately. They are consistent only if no
    // byte arrived in between.
    for (int attempt = 0; attempt < 16; attempt++) {
        int waiting = 0;
        int64_t before = received(socket);
        if (before < 0) return before;
        if (ioctl(socket, FIONREAD, &waiting) < 0) return -errno;
        if (received(socket) == before) return before - waiting;
    }
    return -EAGAIN;
}

int towline_read_receive_buffer(int socket, towline_receive_buffer *buffer) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return -errno;
    if (size < offsetof(struct tcp_info, tcpi_rcv_rtt) + sizeof info.tcpi_rcv_rtt) return -ENOTSUP;
    if (ioctl(socket, FIONREAD, &unread) < 0) return -errno;
    buffer->unread = unread;
    // A receiver sends almost no bytes that are acknowledged, so tcpi_rtt stays that of the handshake and the request.
    buffer->round_trip = info.tcpi_rtt > info.tcpi_rcv_rtt ? info.tcpi_rtt : info.tcpi_rcv_rtt;
    return 0;
}

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

int towline_set_receive_buffer(int socket, int size) {
    if (size == 0) return setsockopt(socket, SOL_SOCKET, SO_BUF_LOCK, &size, sizeof size) < 0 ? -errno : 0;
    // The kernel doubles the size. It does not raise the limit of the window, which a smaller buffer has set before.
    int half = size / 2;
    if (setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &half, sizeof half) < 0) return -errno;
    return setsockopt(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, &size, sizeof size) < 0 ? -errno : 0;
}

void towline_keep_freed_memory(int bytes) { mallopt(M_TRIM_THRESHOLD, bytes); }

void towline_protect_memory(void) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    // The hard limit is unchanged, so that programs that this process starts can have core files. A core_pattern that
    // names a pipe ignores the limit; PR_SET_DUMPABLE covers that case.
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) < 0) return;
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &limit);
}

int towline_memory_is_protected(void) {
    struct rlimit limit;
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0;
}

int towline_is_in_user_namespace(void) {
    // The inode number of the initial namespace is fixed (include/linux/proc_ns.h, PROC_USER_INIT_INO).
    struct stat status;
    return stat("/proc/self/ns/user", &status) == 0 && status.st_ino != 0xEFFFFFFDU;
}

int towline_spawn(char *const *arguments, char *const *environment, int output, const char *directory,
                  enum towline_group group) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return -code;
    if ((code = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return -code;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (group == towline_new_group) flags |= POSIX_SPAWN_SETPGROUP;
    if (group == towline_new_session) flags |= POSIX_SPAWN_SETSID;
    pid_t process = 0;
    // The output may have one of the first three descriptor numbers: it is copied before another file replaces it.
    (code = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)) ||
        (code = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)) ||
        (code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) ||
        (code = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)) ||
        (directory && (code = posix_spawn_file_actions_addchdir_np(&actions, directory))) ||
        (code = posix_spawnattr_setflags(&attributes, flags)) ||
        (code = posix_spawnattr_setpgroup(&attributes, 0)) ||
        (code = posix_spawnattr_setsigdefault(&attributes, &all)) ||
        (code = posix_spawnattr_setsigmask(&attributes, &none)) ||
        (code = posix_spawnp(&process, arguments[0], &actions, &attributes, arguments,
                             environment ? environment : environ));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code ? -code : process;
}

int towline_peek_end(int process, int *code, int *status) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) < 0) return -errno;
    if (info.si_pid == 0) return 0;
    *code = info.si_code;
    *status = info.si_status;
    return 1;
}

int towline_watch_network(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        int code = errno;
        close(descriptor);
        return -code;
    }
    return descriptor;
}

/// Returns whether an interface is up, has a carrier and is not loopback; also true if the system does not tell.
static int is_connected(int descriptor, const char *name) {
    struct ifreq request = {0};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (descriptor < 0 || ioctl(descriptor, SIOCGIFFLAGS, &request) < 0) return errno != ENODEV;
    return (request.ifr_flags & (IFF_UP | IFF_RUNNING | IFF_LOOPBACK)) == (IFF_UP | IFF_RUNNING);
}

// The files are readable where a sandbox refuses netlink sockets.
int towline_has_network(void) {
    FILE *routes = fopen("/proc/thread-self/net/route", "re");
    FILE *routes6 = fopen("/proc/thread-self/net/ipv6_route", "re");
    int result = routes || routes6 ? 0 : -errno;
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char line[512], name[IFNAMSIZ], target[33];
    unsigned flags;
    while (result == 0 && routes && fgets(line, sizeof line, routes)) {
        if (sscanf(line, "%15s %*s %*s %x", name, &flags) != 2 || flags & RTF_REJECT) continue;
        if (strcmp(name, "lo") != 0 && is_connected(descriptor, name)) result = 1;
    }
    while (result == 0 && routes6 && fgets(line, sizeof line, routes6)) {
        if (sscanf(line, "%32s %*s %*s %*s %*s %*s %*s %*s %x %15s", target, &flags, name) != 3) continue;
        if (flags & RTF_REJECT || strncmp(target, "fe8", 3) == 0 || strncmp(target, "ff", 2) == 0) continue;
        if (strcmp(name, "lo") != 0 && is_connected(descriptor, name)) result = 1;
    }
    if (routes) fclose(routes);
    if (routes6) fclose(routes6);
    if (descriptor >= 0) close(descriptor);
    return result;
}

int towline_is_delivered_here(int family, const void *address) {
    size_t size = family == AF_INET6 ? 16 : 4;
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr attribute;
        unsigned char address[16];
    } question = {.head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST}};
    question.head.nlmsg_len = (uint32_t)(offsetof(__typeof__(question), address) + size);
    question.route.rtm_family = (unsigned char)family;
    question.route.rtm_dst_len = (unsigned char)(size * 8);
    question.attribute.rta_type = RTA_DST;
    question.attribute.rta_len = (unsigned short)RTA_LENGTH(size);
    memcpy(question.address, address, size);
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -errno;
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    ssize_t count = send(descriptor, &question, question.head.nlmsg_len, 0);
    // The kernel answers before send(2) returns.
    if (count >= 0) count = recv(descriptor, &answer, sizeof answer, MSG_DONTWAIT);
    int code = count < 0 ? -errno : 0;
    close(descriptor);
    if (code < 0) return code;
    if (!NLMSG_OK(&answer.head, (size_t)count)) return -EBADMSG;
    if (answer.head.nlmsg_type == NLMSG_ERROR) {
        int error = ((struct nlmsgerr *)NLMSG_DATA(&answer.head))->error;
        return error == -ENETUNREACH || error == -EHOSTUNREACH ? 0 : error < 0 ? error : -EBADMSG;
    }
    unsigned char type = ((struct rtmsg *)NLMSG_DATA(&answer.head))->rtm_type;
    return type == RTN_LOCAL || type == RTN_BROADCAST || type == RTN_ANYCAST || type == RTN_MULTICAST;
}
