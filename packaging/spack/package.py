"""Spack's recipe: a folder packages/faultless of a repository of one's own has this file; then
`spack dev-build faultless@main` in a checkout. Checked: that it is Python and sets options that there
are (tests/install/test_install_recipes). It was not built: Spack could not be reached."""
from spack.package import *


class Faultless(CMakePackage):
    """Preloadable huge-page allocator: zero page faults per step."""

    license("Apache-2.0 AND BSD-2-Clause")
    version("main")

    variant("faultstat", default=True, description="Build faultstat, which measures and compares")

    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("liburing@2.2:")
    depends_on("jansson", when="+faultstat")
    depends_on("elfutils", when="+faultstat")
    depends_on("ncurses", when="+faultstat")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def cmake_args(self):
        return [
            self.define("FL_TESTS", False),
            self.define("FL_BENCH", False),
            self.define_from_variant("FL_FAULTSTAT", "faultstat"),
        ]

    def setup_run_environment(self, env):
        env.set("FAULTLESS_LIB", join_path(self.prefix.lib, "libfaultless.so"))
