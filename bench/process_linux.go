package main

import "syscall"

// ownGroup makes a child lead a group, and die with this process however that ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
