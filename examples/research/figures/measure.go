package figures

// Measure names what was measured of a bird.
type Measure string

// What was measured.
const (
	BillLength    Measure = "bill_length_mm"
	BillDepth     Measure = "bill_depth_mm"
	FlipperLength Measure = "flipper_length_mm"
	BodyMass      Measure = "body_mass_g"
)

// Measures are all there are, in the order in which they are reported.
var Measures = []Measure{BillLength, BillDepth, FlipperLength, BodyMass}

// described is how a measure is called in the data and in reports.
var described = map[Measure]struct{ column, label, unit string }{
	BillLength:    {"Culmen Length (mm)", "bill length", "mm"},
	BillDepth:     {"Culmen Depth (mm)", "bill depth", "mm"},
	FlipperLength: {"Flipper Length (mm)", "flipper length", "mm"},
	BodyMass:      {"Body Mass (g)", "body mass", "g"},
}

// Label is the measure in words, Unit its unit.
func (m Measure) Label() string { return described[m].label }

// Unit is "mm" or "g".
func (m Measure) Unit() string { return described[m].unit }

func (m Measure) column() string { return described[m].column }

func measureColumns() []string {
	columns := make([]string, len(Measures))
	for i, m := range Measures {
		columns[i] = m.column()
	}
	return columns
}
