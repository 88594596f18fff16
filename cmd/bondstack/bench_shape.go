package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bondstack/link/wire"
)

// shape is what the links of a benchmark are like, beside their rate.
type shape struct {
	Delay float64 `json:"delay_s"` // one way
	Skew  float64 `json:"skew_s"`  // how much longer the last link takes than the first
	Loss  float64 `json:"loss"`    // the chance of a frame, a packet of 64 KiB counting as one

	delay, skew time.Duration
}

// shapeHelp says what --shape takes.
const shapeHelp = "`S`, what each link is like: rate=1gbit,delay=1ms,skew=200us,loss=0.0001, each of them optional; " +
	"delay is one way, the last link takes skew longer than the first, loss is of frames as sent"

// parse reads the flags whose text has a form of its own. A rate of the shape
// takes the place of --rate.
func (s *benchSettings) parse(shape string, options []string, rate *string) error {
	shaped, err := s.Shape.set(shape)
	if err != nil {
		err = fmt.Errorf("--shape: %w", err)
	}
	if shaped != "" {
		*rate = shaped
	}
	for _, text := range options {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			err = errors.Join(err, fmt.Errorf("--option: %q is not NAME=VALUE", text))
			continue
		}
		if s.Options == nil {
			s.Options = map[string]string{}
		}
		s.Options[name] = value
	}
	return err
}

// set reads a shape from a flag. It returns the rate apart, as --rate has it,
// and "" where none is given.
func (sh *shape) set(text string) (rate string, err error) {
	var errs []error
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		var err error
		switch name {
		case "rate":
			rate = strings.TrimSuffix(value, "bit")
		case "delay":
			sh.delay, err = shapeDelay(value)
		case "skew":
			sh.skew, err = shapeDelay(value)
		case "loss":
			sh.Loss, err = strconv.ParseFloat(value, 64)
			if err != nil || !(sh.Loss >= 0 && sh.Loss <= 1) {
				err = fmt.Errorf("%q is not a chance: allowed are 0 to 1", value)
			}
		default:
			err = fmt.Errorf("unknown: known are rate, delay, skew and loss")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	sh.Delay, sh.Skew = sh.delay.Seconds(), sh.skew.Seconds()
	return rate, errors.Join(errs...)
}

// String is the shape as a part of a sentence, empty for none.
func (sh *shape) String() string {
	var b strings.Builder
	if sh.delay > 0 {
		fmt.Fprintf(&b, ", delay %v", sh.delay)
	}
	if sh.skew > 0 {
		fmt.Fprintf(&b, ", skew %v", sh.skew)
	}
	if sh.Loss > 0 {
		fmt.Fprintf(&b, ", loss %g %%", 100*sh.Loss)
	}
	return b.String()
}

func shapeDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Minute {
		return 0, fmt.Errorf("%q is not a delay: allowed are 0 to 1m, such as 1ms or 200us", text)
	}
	return d, nil
}

// link returns what link i of n is like, in both directions.
func (s *benchSettings) link(i, n int) wire.Impairments {
	im := wire.Impairments{Rate: s.Rate, Delay: s.Shape.delay, Loss: s.Shape.Loss}
	if n > 1 {
		im.Delay += s.Shape.skew * time.Duration(i) / time.Duration(n-1)
	}
	return im
}
