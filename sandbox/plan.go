package sandbox

// plan is what the parent has decided and init carries out. It crosses to init as JSON in a memory file, never in
// arguments or environment, where other processes could read it.
type plan struct {
	Args []string
	As   string // the zeroth argument; "" is the command
	Env  []string
	Dir  string

	UID, GID int // inside

	Entries []entry
	Links   []link
	Files   []file

	ScratchSize uint64
	Procs       uint64
	OpenMax     uint64
	Network     Network
	Ports       []uint16
	Terminal    bool

	NoLandlock   bool
	Sockets      sockets
	NoNamespaces bool
	Scratch      scratch // of NoNamespaces
	ABI          int
	Mounted      bool              // the parent (root) sends the mounts
	Namespaces   map[string]string // of the parent, which the sandbox must not share

	Off layers
}

// scratch are folders of the host that stand for the memory of a sandbox without namespaces.
type scratch struct {
	Base, Home, Tmp string
	Witness         string // writable by its mode, by no rule of Landlock
}

// access is what the sandbox may do with an entry.
type access string

const (
	readOnly  access = "ro"
	writable  access = "rw"
	pinned    access = "pin" // writable, and a mount point so that it cannot be renamed away from under what it holds
	protected access = "protected"
	hidden    access = "hidden"
	device    access = "device"
)

// entry is one mount of the file view.
type entry struct {
	Target string // path inside
	Source string // path on the host without symbolic links; "" for hidden
	Access access
	Dir    bool
	Listed bool // by the operator, not the system's: a root caller's owner is mapped here
	Link   bool // the target is a symbolic link inside a listed folder, which is covered itself
}

// link is a symbolic link in the root.
type link struct{ Path, To string }

// file is a file in the root that the sandbox makes up.
type file struct {
	Path string
	Data []byte
}
