// Package sandbox starts a Linux process that has nothing but what its [Spec] lists: the system read-only, an empty home, the
// folders named, and no way out but one socket that the caller serves.
//
// Most programs need two calls. [Start] makes the sandbox ready; the caller serves [Process.Listener] with its proxy. [Process.Go] lets
// the command run. At the end comes [Process.Wait].
//
// There is no helper program: Start runs the caller's own binary again, and a program that imports this package and finds itself started
// as hearsay-sandbox-init becomes the first process of a sandbox before its main begins.
//
// What holds it, from the outside in: user, mount, pid, network, ipc, uts and cgroup namespaces; a file view that is a list of
// what is allowed, built on file descriptors; no capability in any set; Landlock over the same view; a seccomp filter that
// lists what is allowed. A layer that cannot be applied stops the start with a [LayerError] that names it and says what to do.
// What is weaker is asked for by its longer name ([Weaker]) and stands in the [Report].
//
// # Limits
//
// The kernel is shared: a hole in it that the allowed calls reach is a way out. A process can use all processor time, and
// memory up to the limits of its cgroup, which exist only where one was delegated. What it may write, it may fill with harm:
// in a project that is open for writing, everything that is not on the list of protected paths (see [Protected]) can be changed,
// among it build scripts and the hooks of nested repositories, and those run outside when somebody runs them. Paths that
// it may see show their names on the host. Time, load and the processor's side channels are shared. What it prints to a
// terminal reaches that terminal. Linux on amd64 and arm64 only; elsewhere [Start] refuses.
package sandbox
