# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# For a repository of recipes of your own ("spack repo create"); only the syntax of this file is tested. The tarball is that of "make dist".
# Say where the tarball is ("spack mirror", or the line below), then: spack install openmpi-bfo, and bfo run PROGRAM
from spack.package import *


class OpenmpiBfo(AutotoolsPackage):
    """MPI jobs that survive the loss of a network rail: components for an installed Open MPI, and the command bfo."""

    url = "file:///usr/local/src/bfo-0.1.0.tar.gz"
    license("BSD-3-Clause")
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("perl", type="build")
    depends_on("openmpi@4.1,5.0,6.0")
    depends_on("rdma-core")
    depends_on("hwloc@2:")
    depends_on("libevent")
    depends_on("jansson")

    def configure_args(self):
        return ["--with-openmpi={0}".format(self.spec["openmpi"].prefix)]

    def setup_run_environment(self, env):
        env.set("BFO_CONF", self.prefix.share.bfo.join("bfo.conf"))
