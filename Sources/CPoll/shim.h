// epoll(7) and eventfd(2), which Swift's module of the C library leaves out.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>

// Edge-triggered, both ways; the constants are enumerators of a type that Swift wraps.
static const unsigned cpoll_socket = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (unsigned)EPOLLET;
static const unsigned cpoll_readable = EPOLLIN | EPOLLRDHUP;
static const unsigned cpoll_writable = EPOLLOUT;
static const unsigned cpoll_failed = EPOLLERR | EPOLLHUP;
