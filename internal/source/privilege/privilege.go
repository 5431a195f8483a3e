// Package privilege gives up what slowpath may do beyond what a watch needs, once the kernel programs are loaded.
package privilege

import "errors"

// User is whose files slowpath may write after Drop, by number.
type User struct{ UID, GID int }

// Nobody owns no files. The number is that of nobody in Linux distributions, and of the kernel's overflow user.
var Nobody = User{65534, 65534}

// ErrBuild says that this build of slowpath cannot change the privileges of all of its threads.
var ErrBuild = errors.New("slowpath was built with cgo, which keeps the rights of its threads; build it with " +
	"CGO_ENABLED=0 (make build)")
