// Which sanitizers a test was compiled with, whichever compiler it was.
#pragma once

namespace tutti::test_support {

#if defined(__has_feature)
#define TUTTI_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TUTTI_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TUTTI_HAS_FEATURE(address_sanitizer)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || TUTTI_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif

#undef TUTTI_HAS_FEATURE

}  // namespace tutti::test_support
