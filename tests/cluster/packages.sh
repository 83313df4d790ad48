#!/usr/bin/env bash
# What the cluster test needs of the machine. `packages.sh check` says in one line why it cannot be
# had and fails; `packages.sh install` installs it.
set -euo pipefail
packages=(slurmctld slurmd slurm-client munge iproute2)

missing() {
    for command in slurmctld slurmd sbatch munged ip; do
        command -v "$command" >/dev/null || return 0
    done
    return 1
}

refuse() {
    echo "cluster test skipped: $1"
    exit 1
}

[[ $(uname) == Linux ]] || refuse "it needs Linux network namespaces"
[[ $(id -u) == 0 ]] || refuse "it needs root, to make network namespaces"
unshare --net true 2>/dev/null || refuse "this root may not make network namespaces"
if missing; then
    command -v apt-get >/dev/null || refuse "no Slurm here, and no apt-get to install it with"
    candidates=$(apt-cache policy "${packages[@]}" 2>/dev/null | grep -c 'Candidate: [0-9]' || true)
    if ((candidates < ${#packages[@]})); then
        # An image without package lists is not a machine without packages.
        apt-get update -qq >/dev/null 2>&1 || refuse "no Slurm here, and apt-get update fails"
    fi
    apt-get install --simulate -qq "${packages[@]}" >/dev/null 2>&1 ||
        refuse "apt-get cannot install ${packages[*]}"
fi
if [[ ${1:-check} == install ]] && missing; then
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}"
fi
