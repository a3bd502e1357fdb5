from __future__ import annotations

from pathlib import Path

import pytest

from runner.host.software import container_runtime, software
from tests.runner.host.tools_on_path import write


@pytest.mark.parametrize(
    ("files", "environment", "runtime"),
    [
        ({}, {}, None),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'engine="podman-5.0"'}, {}, "podman"),
        ({".dockerenv": "", "var/run/secrets/kubernetes.io/serviceaccount/token": "x"}, {}, "kubernetes"),
        ({".singularity.d/runscript": ""}, {}, "apptainer"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({"proc/1/cgroup": "0::/\n"}, {}, None),
        ({"proc/1/cgroup": "12:cpu:/docker/0123\n"}, {}, "docker"),
        ({"proc/1/cgroup": "0::/kubepods.slice/pod1\n"}, {}, "kubernetes"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
    ],
)
def test_containers_are_known_by_their_marks(
    tmp_path: Path, files: dict[str, str], environment: dict[str, str], runtime: str | None
) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    assert container_runtime(tmp_path, environment) == runtime
    assert software("3.11.7", "/x/python", tmp_path, environment).containerized == (runtime is not None)


def test_facts_come_from_the_files_of_the_system(tmp_path: Path) -> None:
    write(tmp_path, "etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t: x\n")
    write(tmp_path, "proc/meminfo", "MemTotal:       24684096 kB\nMemFree: 1 kB\n")
    found = software("3.12.1", "/x/python", tmp_path, {})
    assert (found.os, found.python, found.python_executable) == (
        "Debian GNU/Linux 12 (bookworm)",
        "3.12.1",
        "/x/python",
    )
    assert (found.cpu_model, found.memory_bytes) == ("AMD EPYC 9654", 24684096 * 1024)
    assert found.cpu_count


def test_a_system_that_tells_nothing_is_still_described(tmp_path: Path) -> None:
    found = software("3.11.7", "/x/python", tmp_path, {})
    assert (found.os, found.cpu_model, found.memory_bytes) == ("Linux", None, None)
