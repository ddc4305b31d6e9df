package main

// The other architectures of an arm64 kernel need a program of their own; a program of this one cannot make their calls.

func int80() {}

func x32() {}

func foreign() {}
