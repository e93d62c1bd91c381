// The calls of the system that Swift cannot spell: Glibc's module hides what _GNU_SOURCE shows.
#pragma once
