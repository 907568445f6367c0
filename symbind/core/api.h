// Marks what the shared library exports: everything that the namespaces of public headers declare. The library is
// compiled with hidden visibility, so declarations of other headers are not exported.
#pragma once

#define SYMBIND_API [[gnu::visibility("default")]]
