package transom

import (
	"context"
	"fmt"

	"github.com/transom-run/transom/internal/picture"
	"github.com/transom-run/transom/model"
)

// fitted keeps what images became within the limits of the model in use, by their
// data in base64: those of the newest request that had any, so that a window's
// images are made smaller once. Those that were within the limits are kept too.
type fitted struct {
	limits string
	images map[string]shown
}

// shown is an image as the model is shown it, or why it is not.
type shown struct {
	mime, data string
	missing    string
}

// show brings a request's images within what its model takes. One that cannot be
// shown is said to be missing, so that no image makes a provider refuse the
// conversation again and again.
func (s *loaded) show(ctx context.Context, req *model.Request) error {
	if !pictured(req.Messages) {
		return nil
	}
	in := s.requests.get()
	info := s.models.sight(ctx, req.Model)
	if !s.known(req) {
		in = shape{}
	}
	if in.vision != nil {
		info.Vision = *in.vision
	}
	limits := info.Images
	if in.abilities != nil {
		limits = limits.Over(in.abilities.Images)
	}
	if !info.Vision {
		req.Messages = blind(req.Messages)
		return nil
	}
	was := s.requests.was(limits)
	now := make(map[string]shown, len(was))
	left := -1
	if limits.Count > 0 {
		left = limits.Count
	}
	ms := make([]model.Message, len(req.Messages))
	for i := len(ms) - 1; i >= 0; i-- { // where only some may be shown, the newest are
		m := req.Messages[i]
		var images []model.Image
		for k := len(m.Images) - 1; k >= 0; k-- {
			im := m.Images[k]
			if left == 0 {
				m.Text += missing(&im, fmt.Sprintf("the model in use takes at most %d images", limits.Count))
				continue
			}
			got, ok := was[im.Data]
			if !ok {
				var err error
				got.mime, got.data, err = picture.FitText(ctx, im.MIMEType, im.Data, picture.Limits{Types: limits.Types, Bytes: limits.Bytes})
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case err != nil:
					got.missing = err.Error()
				}
			}
			now[im.Data] = got
			if got.missing != "" {
				m.Text += missing(&im, got.missing)
				continue
			}
			left--
			images = append(images, model.Image{Name: im.Name, MIMEType: got.mime, Data: got.data})
		}
		for a, b := 0, len(images)-1; a < b; a, b = a+1, b-1 {
			images[a], images[b] = images[b], images[a]
		}
		m.Images = images
		ms[i] = m
	}
	req.Messages = ms
	s.requests.now(limits, now)
	return nil
}

// was returns what images became under these limits.
func (s *shaping) was(limits model.ImageLimits) map[string]shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fitted.limits != fmt.Sprint(limits) {
		return nil
	}
	return s.fitted.images
}

func (s *shaping) now(limits model.ImageLimits, images map[string]shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fitted = fitted{fmt.Sprint(limits), images}
}

// sight is what is known of how a model sees. Only an account says whether its
// models do; others are taken to.
func (m *models) sight(ctx context.Context, id string) model.Info {
	m.mu.Lock()
	answers, choice := m.answers, m.choice
	info, listed := m.listed(id)
	m.mu.Unlock()
	blank := model.Info{Vision: true, Images: info.Images}
	if answers != nil || listed || choice == nil || choice.Account == nil {
		return blank
	}
	list, err := choice.Account.Models(ctx)
	if err != nil {
		return blank
	}
	for i, info := range list {
		if info.ID == id || id == "" && i == 0 {
			return info
		}
	}
	return blank
}

func pictured(ms []model.Message) bool {
	for i := range ms {
		if len(ms[i].Images) > 0 {
			return true
		}
	}
	return false
}

// missing is what the model reads of an image that it is not shown.
func missing(im *model.Image, why string) string {
	name := im.Name
	if name == "" {
		name = "an image"
	}
	return "\n(" + name + " is not shown: " + why + ".)"
}

// blind is a window for a model that takes no pictures. What a user sent is said
// to be missing; a tool's result has its text.
func blind(ms []model.Message) []model.Message {
	out := make([]model.Message, len(ms))
	for i, m := range ms {
		for k := range m.Images {
			if m.Role != model.User {
				break
			}
			m.Text += missing(&m.Images[k], "the model in use takes no images")
		}
		m.Images = nil
		out[i] = m
	}
	return out
}
