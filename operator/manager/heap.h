// What the program asks of the C library's heap; nothing where that isn't glibc's.
#pragma once

#include <thread>

namespace coxswain {

// Objects are parsed by one thread and freed by another. With an arena for each thread, which is glibc's way,
// each would keep what a burst has left in it. Call before there are threads.
void share_memory_between_threads();

// A thread that gives memory which has become free back to the system, which glibc alone does only for what
// lies at a heap's end: after a burst of jobs two thirds of the heap are free and stay the program's.
std::jthread give_back_free_memory();

}  // namespace coxswain
