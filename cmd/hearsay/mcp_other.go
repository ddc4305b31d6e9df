//go:build !unix

package main

import "os"

func pollable(f *os.File) (*os.File, func()) { return f, func() {} }

func readerGone(*os.File) func() bool { return nil }
