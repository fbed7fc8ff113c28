// Catch2, whichever major version the system has: Debian 12 ships 2.13, Ubuntu 24.04 ships 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // NOLINT(google-global-names-in-headers): version 2 has it at this place
#else
#include <catch2/catch.hpp>
#endif
