package bonding

import "bondstack/link"

// usedRoutes are what a stack knows of its ways, as one value that can be
// published.
type usedRoutes struct{ link.Routes }

var _ link.RouteUser = (*Bond)(nil)

// UseRoutes implements link.RouteUser.
func (b *Bond) UseRoutes(r link.Routes) (cancel func()) {
	mine := &usedRoutes{r}
	b.routes.Store(mine)
	return func() { b.routes.CompareAndSwap(mine, nil) }
}

// stackRoutes returns the routes of the stack above, nil where there is none
// that told. They must not be asked with a lock held.
func (b *Bond) stackRoutes() link.Routes {
	if r := b.routes.Load(); r != nil {
		return r.Routes
	}
	return nil
}
