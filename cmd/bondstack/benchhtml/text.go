package benchhtml

import "fmt"

// unitOf returns the unit that suits a throughput.
func unitOf(bits float64) (unit float64, name string) {
	switch {
	case bits >= 1e9:
		return 1e9, "Gbit/s"
	case bits >= 1e6:
		return 1e6, "Mbit/s"
	case bits >= 1e3:
		return 1e3, "kbit/s"
	}
	return 1, "bit/s"
}

// bitsText writes a throughput with three digits.
func bitsText(bits float64) string {
	unit, name := unitOf(bits)
	v := bits / unit
	digits := 0
	switch {
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, name)
}

func percentText(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

func secondsText(v float64) string { return fmt.Sprintf("%.2f s", v) }

// plotData is what the script knows of a timeline.
type plotData struct {
	Slaves   []string      `json:"slaves"`
	Segments []segmentData `json:"segments"`
	Left     float64       `json:"left"`
	Right    float64       `json:"right"`
	Width    float64       `json:"width"`
	End      float64       `json:"end"`
}

type segmentData struct {
	Kind  string      `json:"kind"`
	Start float64     `json:"start"`
	Times []float64   `json:"times"`
	Bits  [][]float64 `json:"bits"`
}

// data returns what the script needs; the template writes it as JSON.
func (t *Timeline) data() plotData {
	d := plotData{Slaves: t.Slaves, Segments: []segmentData{}, Left: left, Right: right, Width: width, End: t.axes().end}
	for _, s := range t.Segments {
		d.Segments = append(d.Segments, segmentData(s))
	}
	return d
}
