package main

import (
	"fmt"
	"testing"
)

func BenchmarkEngineStep(b *testing.B) {
	program, err := loopProgram()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := runLoop(program, loopSteps); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/loopSteps, "ns/superstep")
}

func BenchmarkEngineList(b *testing.B) {
	g := listGraph(listSteps)
	b.ReportAllocs()
	for b.Loop() {
		if err := runList(b.Context(), g, listSteps); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/listSteps, "ns/superstep")
}

func BenchmarkEngineSends(b *testing.B) {
	program, err := sendsProgram()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{fewSends, manySends} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sends := makeSends(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := runSends(program, sends); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
