//go:build unix && !linux

package main

import "syscall"

// ownGroup makes a child lead a group. Only Linux can also tie its life to ours.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
